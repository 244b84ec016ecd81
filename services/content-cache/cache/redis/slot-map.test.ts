import { expect, test } from '@jest/globals';
import { mergeViews, readClusterNodes } from './slot-map.ts';

const asked = { host: 'asked', port: 7 };
const node = (id: string, flags: string, epoch: number, ...slots: string[]) =>
  [id, `10.0.0.${id}:6379@16379,name-${id}`, flags, '-', '0', '0', epoch, 'connected', ...slots].join(' ');
const view = (...lines: string[]) => readClusterNodes(lines.join('\n'), asked, false);
const at = (id: number) => `10.0.0.${id}:6379`;

test('distinguishes owners of slots from replicas and unknown nodes', () => {
  const parsed = view(
    node('1', 'myself,master', 3, '0-99', '101'),
    node('2', 'slave', 3),
    node('3', 'master,fail', 2, '102-16383'),
    node('4', 'master', 4),
    '5 :0@0 master,noaddr - 0 0 0 disconnected',
    '6 10.0.0.6:6379@16379 handshake - 0 0 0 connected',
  );
  expect(parsed.nodes.map(({ host }) => host)).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4']);
  expect(parsed.owners.map(({ at: { host } }) => host)).toEqual(['10.0.0.1', '10.0.0.3']);
  expect(parsed.isMoving).toBe(false);
  const map = mergeViews([parsed]);
  expect([map.owners[99], map.owners[100], map.owners[101]]).toEqual([at(1), undefined, at(1)]);
  expect([...map.primaries.keys()]).toEqual([at(1), at(3)]);
  expect(map.isWhole).toBe(false);
  expect(mergeViews([parsed, view(node('4', 'master', 5, '100'))]).isWhole).toBe(true);
});

test.each(['[93-<-2]', '[77->-3]'])('detects a moving slot: %s', (mark) => {
  expect(view(node('1', 'myself,master', 1, '0-16383', mark)).isMoving).toBe(true);
});

test('ownership is the same text only for the same owners and epochs', () => {
  const lines = [node('1', 'myself,master', 1, '0-99'), node('2', 'master', 2, '100-16383')];
  const { ownership } = view(...lines);
  expect(view(...lines.toReversed()).ownership).toBe(ownership);
  expect(view(...lines, node('3', 'slave', 2)).ownership).toBe(ownership);
  for (const other of [node('2', 'master', 3, '100-16383'), node('2', 'master', 2, '101-16383')])
    expect(view(lines[0]!, other).ownership).not.toBe(ownership);
});

test('the highest epoch wins if nodes disagree, in any order', () => {
  const cutOff = view(node('1', 'myself,master', 1, '0-16383'));
  const heir = view(node('2', 'myself,master', 5, '0-16383'), node('1', 'slave', 5));
  const views = [cutOff, heir];
  for (const ordered of [views, views.toReversed()]) {
    const { owners, primaries } = mergeViews(ordered);
    expect(new Set(owners)).toEqual(new Set([at(2)]));
    expect(primaries.size).toBe(1);
  }
});

test('falls back to the address that was asked, and prefers names with TLS', () => {
  const line = '1 :6379@16379 myself,master - 0 0 1 connected 0-16383';
  expect(readClusterNodes(line, asked, false).nodes).toEqual([asked]);
  const named = readClusterNodes(node('1', 'myself,master', 1, '0-16383'), asked, true);
  expect(named.nodes).toEqual([{ host: 'name-1', port: 6379 }]);
  const six = '1 ::1:6379@16379 master - 0 0 1 connected 0-16383';
  expect(readClusterNodes(six, asked, true).nodes).toEqual([{ host: '::1', port: 6379 }]);
});
