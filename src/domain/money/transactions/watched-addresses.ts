import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import type { WatchedAddresses } from '../../../ports/chain-transfers.ts';
import type { Tables } from '../../tables.ts';

// HOT: asked for the recipients of every block of the chains that are followed; bench/by-hand/deposits.ts.

/** Parameters of one statement are limited, and so is the time it may take. */
const AT_ONCE = 500;

type InUnit = <T>(work: (em: SqlEntityManager) => Promise<T>) => Promise<T>;

/** The addresses of live wallets, of all apps. Each question has its own short transaction. */
export function watchedAddresses(inUnit: InUnit): WatchedAddresses {
  return {
    async among(addresses) {
      const found = new Set<string>();
      for (let start = 0; start < addresses.length; start += AT_ONCE) {
        const some = addresses.slice(start, start + AT_ONCE);
        for (const address of await inUnit((em) => liveAmong(em, some))) found.add(address);
      }
      return found;
    },
    nextOnSolana: (address, limit) => inUnit((em) => liveOnSolana(em, address, limit)),
  };
}

async function liveAmong(em: SqlEntityManager, addresses: readonly string[]): Promise<string[]> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select('address')
    .where('address', 'in', addresses)
    .where('archived_at_ms', 'is', null)
    .execute();
  return rows.map(({ address }) => address);
}

async function liveOnSolana(
  em: SqlEntityManager,
  address: string | undefined,
  limit: number,
): Promise<string[]> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select('address')
    .distinct()
    // Literals, so that the partial index `wallets_on_solana` applies.
    .where(sql<boolean>`chain_type = 'solana'`)
    .where('archived_at_ms', 'is', null)
    .where('address', '>', address ?? '')
    .orderBy('address')
    .limit(limit)
    .execute();
  return rows.map(({ address: found }) => found);
}
