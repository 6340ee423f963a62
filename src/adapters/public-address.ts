import { BlockList, isIP } from 'node:net';

// IANA IPv4 Special-Purpose Address Registry plus the multicast and reserved blocks: no address in them belongs to a
// publicly reachable server.
const closedIpv4: readonly [string, number][] = [
  ['0.0.0.0', 8], // this network (RFC 791)
  ['10.0.0.0', 8], // private use (RFC 1918)
  ['100.64.0.0', 10], // shared by carriers (RFC 6598)
  ['127.0.0.0', 8], // loopback (RFC 1122)
  ['169.254.0.0', 16], // link-local, cloud metadata (RFC 3927)
  ['172.16.0.0', 12], // private use (RFC 1918)
  ['192.0.0.0', 24], // protocol assignments (RFC 6890)
  ['192.0.2.0', 24], // documentation (RFC 5737)
  ['192.31.196.0', 24], // AS112 (RFC 7535)
  ['192.52.193.0', 24], // AMT (RFC 7450)
  ['192.88.99.0', 24], // 6to4 relays (RFC 7526)
  ['192.168.0.0', 16], // private use (RFC 1918)
  ['192.175.48.0', 24], // AS112 (RFC 7534)
  ['198.18.0.0', 15], // benchmarking (RFC 2544)
  ['198.51.100.0', 24], // documentation (RFC 5737)
  ['203.0.113.0', 24], // documentation (RFC 5737)
  ['224.0.0.0', 4], // multicast (RFC 5771)
  ['240.0.0.0', 4], // reserved and broadcast (RFC 1112, RFC 919)
];

// The entries of the IANA IPv6 Special-Purpose Address Registry inside the global unicast block 2000::/3. Everything
// outside that block is refused: ::1, IPv4-mapped ::ffff:0:0/96, NAT64 64:ff9b::/96 and 64:ff9b:1::/48, discard
// 100::/64, unique local fc00::/7, link-local fe80::/10, site-local fec0::/10, multicast ff00::/8.
const closedIpv6: readonly [string, number][] = [
  ['2001::', 23], // protocol assignments: Teredo, benchmarking, ORCHID, AMT, AS112 (RFC 2928)
  ['2001:db8::', 32], // documentation (RFC 3849)
  ['2002::', 16], // 6to4, which embeds an IPv4 address (RFC 3056)
  ['2620:4f:8000::', 48], // AS112 (RFC 7534)
  ['3fff::', 20], // documentation (RFC 9637)
];

const closed = new BlockList();
for (const [address, prefix] of closedIpv4) closed.addSubnet(address, prefix, 'ipv4');
for (const [address, prefix] of closedIpv6) closed.addSubnet(address, prefix, 'ipv6');

const globalUnicast = new BlockList();
globalUnicast.addSubnet('2000::', 3, 'ipv6');

/**
 * Whether an IP address can belong to a server on the public internet.
 *
 * CHOICE: an IPv6 address that embeds an IPv4 address (mapped, NAT64, 6to4, Teredo) is never public: name servers need
 * not return one, and the embedded address may be private.
 *
 * @param address in the format of `net`, with an optional zone, without brackets.
 */
export function isPublicAddress(address: string): boolean {
  const [bare = ''] = address.split('%');
  const family = isIP(bare);
  if (family === 4) return !closed.check(bare, 'ipv4');
  return family === 6 && globalUnicast.check(bare, 'ipv6') && !closed.check(bare, 'ipv6');
}
