import type { LabelSelector } from 'kubernetes-types/meta/v1.d.ts';
import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from 'kubernetes-types/networking/v1.d.ts';

type Labels = Record<string, string>;

/** An end of a connection: a pod of the platform, a pod of another namespace, or an IP address. */
export interface Peer {
  pod?: Labels;
  /** Labels of its namespace; undefined for the platform's namespace. */
  namespace?: Labels;
  address?: string;
  ports?: Record<string, number>;
}

function matches(selector: LabelSelector, labels: Labels): boolean {
  const isOneOf = ({ key, values }: { key: string; values?: string[] }) => values!.includes(labels[key]!);
  return (
    Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value) &&
    (selector.matchExpressions ?? []).every((one) => isOneOf(one) === (one.operator === 'In'))
  );
}

/** Matches an address block literally, and any other address with 0.0.0.0/0, which is enough for the tests. */
function holds({ cidr, except = [] }: NonNullable<NetworkPolicyPeer['ipBlock']>, address: string): boolean {
  const begins = (block: string) =>
    block === '0.0.0.0/0' || address.startsWith(block.replace(/(\.0)*\/\d+$/, ''));
  return begins(cidr) && !except.some(begins);
}

function isMeant({ ipBlock, namespaceSelector, podSelector }: NetworkPolicyPeer, peer: Peer): boolean {
  if (ipBlock) return peer.address !== undefined && holds(ipBlock, peer.address);
  if (!peer.pod) return false;
  const isThere = namespaceSelector
    ? peer.namespace !== undefined && matches(namespaceSelector, peer.namespace)
    : peer.namespace === undefined;
  return isThere && matches(podSelector ?? {}, peer.pod);
}

function isOpen(ports: NetworkPolicyPort[] | undefined, to: Peer, port: number): boolean {
  const number = (given: number | string) => (typeof given === 'string' ? to.ports?.[given] : given);
  return ports === undefined || ports.some((one) => number(one.port!) === port);
}

/** As in Kubernetes: a pod without a policy, such as one of another namespace, is open; else any policy may allow. */
function allows(
  policies: NetworkPolicy[],
  type: 'Ingress' | 'Egress',
  from: Peer,
  to: Peer,
  port: number,
): boolean {
  const [own, other] = type === 'Egress' ? [from, to] : [to, from];
  if (!own.pod || own.namespace) return true;
  const selecting = policies
    .map(({ spec }) => spec!)
    .filter(({ podSelector, policyTypes }) => policyTypes!.includes(type) && matches(podSelector, own.pod!));
  if (selecting.length === 0) return true;
  const rules = selecting.flatMap(({ ingress = [], egress = [] }) =>
    type === 'Ingress'
      ? ingress.map(({ from, ports }) => ({ peers: from, ports }))
      : egress.map(({ to: peers, ports }) => ({ peers, ports })),
  );
  return rules.some(
    ({ peers, ports }) =>
      (peers === undefined || peers.some((peer) => isMeant(peer, other))) && isOpen(ports, to, port),
  );
}

/** Whether the policies of the platform's namespace allow `from` to connect to a port of `to`. */
export const reaches = (policies: NetworkPolicy[], from: Peer, to: Peer, port: number): boolean =>
  allows(policies, 'Egress', from, to, port) && allows(policies, 'Ingress', from, to, port);
