import { Resolver } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';

/** A name server that is silent is asked twice, the second time for longer. */
const TIMEOUT_MS = 2_500;
const TRIES = 2;

/**
 * Looks names up by asking name servers itself, where the system's own lookup takes one of Node's four threads until
 * it has an answer: a few names whose servers are silent would hold up every other lookup, and whatever else waits for
 * a thread.
 *
 * CHOICE: so the machine's hosts file does not count, nor do its search domains: what is looked up is public.
 *
 * @param servers addresses, with or without a port; those of the system when left out.
 * @returns a lookup for `net`, which answers every address, IPv4 first.
 */
export function nameServerLookup(servers?: readonly string[]): LookupFunction {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  return (hostname, _options, callback) => {
    const asked = [resolver.resolve4(hostname), resolver.resolve6(hostname)];
    void Promise.allSettled(asked).then((answers) => {
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
