import type { HostPort } from '@content-platform/chassis';

const SLOTS = 16_384;

interface Member {
  at: HostPort;
  isSelf: boolean;
  epoch: number;
  ranges: [number, number][];
}

/** The cluster as one node tells it. */
export interface ClusterView {
  /** Every node whose address is known, replicas too. */
  nodes: HostPort[];
  /** The primaries that own slots. */
  owners: Member[];
  /** Who owns which slots, under which config epochs: what one node says twice, or two nodes say, is the same text. */
  ownership: string;
  /** Whether a slot is on its way from this node, or to it. */
  isMoving: boolean;
}

/** Where to find each slot. */
export interface SlotMap {
  /** `host:port` of the primary by slot; undefined: nobody's */
  owners: (string | undefined)[];
  /** by `host:port` */
  primaries: Map<string, HostPort>;
  nodes: HostPort[];
  isWhole: boolean;
}

export const addressOf = ({ host, port }: HostPort): string => `${host}:${port}`;

/**
 * Reads the answer to CLUSTER NODES, a node a line:
 * <id> <ip:port@cport[,hostname]> <flags> <primary> <ping> <pong> <config-epoch> <link> <slot|from-to|[slot->-id]> …
 * https://redis.io/docs/latest/commands/cluster-nodes/
 *
 * @param asked the address of the node that answered: it need not know its own
 * @param byName hosts are called by the names that they announce, where they do: certificates hold names
 */
export function readClusterNodes(text: string, asked: HostPort, byName: boolean): ClusterView {
  const nodes: HostPort[] = [];
  const owners: Member[] = [];
  const ownership: string[] = [];
  let isMoving = false;
  for (const line of text.trim().split('\n')) {
    const [id, address, flagText, , , , epoch, , ...slots] = line.trim().split(' ');
    const flags = flagText?.split(',') ?? [];
    const isSelf = flags.includes('myself');
    const at = isSelf ? (readAddress(address!, byName) ?? asked) : readAddress(address!, byName);
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

/**
 * One map of what several nodes tell. Where they disagree on a slot, the highest config epoch owns it, as among the
 * nodes themselves. A wrong map does no harm: a node refuses the keys of slots that are not its own.
 */
export function mergeViews(views: ClusterView[]): SlotMap {
  const best = Array<Member | undefined>(SLOTS).fill(undefined);
  for (const owner of views.flatMap((view) => view.owners)) {
    for (const [from, to] of owner.ranges) {
      for (let slot = from; slot <= to; slot += 1) {
        const other = best[slot];
        // Of itself a node knows best where it is.
        const isBetter = !other || owner.epoch > other.epoch || (owner.epoch === other.epoch && owner.isSelf);
        if (isBetter) best[slot] = owner;
      }
    }
  }
  const unique = (all: HostPort[]) => new Map(all.map((at) => [addressOf(at), at]));
  return {
    owners: best.map((owner) => owner && addressOf(owner.at)),
    primaries: unique([...new Set(best)].flatMap((owner) => (owner ? [owner.at] : []))),
    nodes: [...unique(views.flatMap((view) => view.nodes)).values()],
    isWhole: best.every(Boolean),
  };
}

/** The slot of a key of ours, which has no hash tag: CRC16 (XMODEM) of the Redis Cluster specification. */
export function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(key)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc % SLOTS;
}
