import { sql } from 'kysely';
import type { Tables } from '../../tables.ts';
import type { KeyQuorumContext } from './find-key-quorum.ts';

/** Where a key quorum can be named by something else. */
interface KeyQuorumReference {
  /** What names it, for the caller. */
  readonly as: string;
  readonly isNamed: (context: KeyQuorumContext, id: string) => Promise<boolean>;
}

/** Every place. A resource that takes an owner or a signer adds its line. */
const references: readonly KeyQuorumReference[] = [
  { as: 'the owner of a wallet', isNamed: namedIn('wallets', 'owner_id') },
  { as: 'a signer of a wallet', isNamed: namedIn('wallet_signers', 'signer_id') },
  { as: 'the owner of a policy', isNamed: namedIn('policies', 'owner_id') },
  { as: 'the owner of a condition set', isNamed: namedIn('condition_sets', 'owner_id') },
  { as: 'the owner of an aggregation', isNamed: namedIn('aggregations', 'owner_id') },
  { as: 'the default of an organization', isNamed: namedIn('organizations', 'default_key_quorum_id') },
  { as: 'a member of another key quorum', isNamed: namedIn('key_quorum_members', 'member') },
];

/** What the key quorum still is to other resources, in words: `the owner of a wallet`. */
export async function listKeyQuorumReferences(context: KeyQuorumContext, id: string): Promise<string[]> {
  const named: string[] = [];
  for (const reference of references) {
    if (await reference.isNamed(context, id)) named.push(reference.as);
  }
  return named;
}

function namedIn<Table extends keyof Tables & string>(
  table: Table,
  column: keyof Tables[Table] & string,
): KeyQuorumReference['isNamed'] {
  return async ({ em }, id) => {
    const query = sql`select 1 from ${sql.table(table)} where ${sql.ref(column)} = ${id} limit 1`;
    return (await query.execute(em.getKysely<Tables>())).rows.length > 0;
  };
}
