import type { HostPort } from '@content-platform/chassis';

const slotCount = 16_384;

interface SlotOwner {
  at: HostPort;
  isSelf: boolean;
  epoch: number;
  ranges: [number, number][];
}

/** The cluster as one node reports it. */
export interface ClusterView {
  /** Every node whose address is known, replicas included. */
  nodes: HostPort[];
  /** The primaries that own slots. */
  owners: SlotOwner[];
  /** Slots and config epoch of each owner as a text, to compare the views of different nodes. */
  ownership: string;
  /** Whether a slot is moving from or to this node. */
  isMoving: boolean;
}

export interface SlotMap {
  /** `host:port` of the primary by slot; undefined: the slot has no owner */
  owners: (string | undefined)[];
  /** by `host:port` */
  primaries: Map<string, HostPort>;
  nodes: HostPort[];
  /** Whether every slot has an owner. */
  isWhole: boolean;
}

export const addressOf = ({ host, port }: HostPort): string => `${host}:${port}`;

/**
 * Parses the reply to CLUSTER NODES, one node per line:
 * <id> <ip:port@cport[,hostname]> <flags> <primary> <ping> <pong> <config-epoch> <link> <slot|from-to|[slot->-id]> …
 * https://redis.io/docs/latest/commands/cluster-nodes/
 * `self` is the address of the node that replied, which may not know it. `byName` prefers announced host names to IP
 * addresses, because TLS certificates hold names.
 */
export function readClusterNodes(text: string, self: HostPort, byName: boolean): ClusterView {
  const nodes: HostPort[] = [];
  const owners: SlotOwner[] = [];
  const ownership: string[] = [];
  let isMoving = false;
  for (const line of text.trim().split('\n')) {
    const [id, address, flagText, , , , epoch, , ...slots] = line.trim().split(' ');
    const flags = flagText?.split(',') ?? [];
    const isSelf = flags.includes('myself');
    const at = readAddress(address!, byName) ?? (isSelf ? self : undefined);
    if (!at || flags.includes('noaddr') || flags.includes('handshake')) continue;
    nodes.push(at);
    const owned = slots.filter((slot) => !slot.startsWith('['));
    if (owned.length < slots.length) isMoving = true;
    if (!flags.includes('master') || owned.length === 0) continue;
    const ranges = owned.map((range): [number, number] => {
      const [from, to = from] = range.split('-').map(Number);
      return [from!, to!];
    });
    owners.push({ at, isSelf, epoch: Number(epoch), ranges });
    ownership.push(`${id} ${epoch} ${owned.join(' ')}`);
  }
  return { nodes, owners, ownership: ownership.toSorted().join('\n'), isMoving };
}

function readAddress(text: string, byName: boolean): HostPort | undefined {
  const [address, name] = text.split(',');
  const [, ip, port] = /^(.*):(\d+)@/.exec(address!) ?? [];
  const host = byName && name ? name : ip;
  return host && Number(port) > 0 ? { host, port: Number(port) } : undefined;
}

/** Merges views: the highest config epoch owns a slot. A wrong map is harmless, because nodes refuse keys of other slots. */
export function mergeViews(views: ClusterView[]): SlotMap {
  // Later entries win. If two have the same epoch, a node's own view wins: it knows its own address.
  const ranked = views
    .flatMap((view) => view.owners)
    .toSorted((a, b) => a.epoch - b.epoch || Number(a.isSelf) - Number(b.isSelf));
  const best = Array<SlotOwner | undefined>(slotCount).fill(undefined);
  for (const owner of ranked) for (const [from, to] of owner.ranges) best.fill(owner, from, to + 1);
  const unique = (all: HostPort[]) => new Map(all.map((at) => [addressOf(at), at]));
  return {
    owners: best.map((owner) => owner && addressOf(owner.at)),
    primaries: unique([...new Set(best)].flatMap((owner) => (owner ? [owner.at] : []))),
    nodes: [...unique(views.flatMap((view) => view.nodes)).values()],
    isWhole: best.every(Boolean),
  };
}

/** Returns the slot of a key without a hash tag: CRC16 (XMODEM), as the Redis Cluster specification defines it. */
export function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(key)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc % slotCount;
}
