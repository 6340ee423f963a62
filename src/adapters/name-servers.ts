import { Resolver } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';

/** A name server without a response is queried twice, the second time with a longer timeout. */
const TIMEOUT_MS = 2_500;
const TRIES = 2;

/**
 * Resolves host names with direct DNS queries. The system's lookup blocks one of Node's four threads until it has a
 * response, so a few names with unresponsive servers would delay all other lookups and everything else that needs a
 * thread.
 *
 * CHOICE: ignores the hosts file and search domains, because only public names are resolved.
 *
 * @param servers addresses with an optional port; the system's servers by default.
 * @returns a lookup function for `net` that returns all addresses, IPv4 first.
 */
export function nameServerLookup(servers?: readonly string[]): LookupFunction {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  return (hostname, _options, callback) => {
    const queries = [resolver.resolve4(hostname), resolver.resolve6(hostname)];
    void Promise.allSettled(queries).then((answers) => {
      const found = answers.flatMap((answer, index) =>
        answer.status === 'fulfilled'
          ? answer.value.map((address) => ({ address, family: index === 0 ? 4 : 6 }))
          : [],
      );
      const [failed] = answers.filter((answer) => answer.status === 'rejected');
      callback(found.length === 0 && failed !== undefined ? failed.reason : null, found);
    });
  };
}
