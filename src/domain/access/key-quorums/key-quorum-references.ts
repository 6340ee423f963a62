import { sql } from 'kysely';
import type { Tables } from '../../tables.ts';
import type { KeyQuorumContext } from './find-key-quorum.ts';

// HOT: queries tables of higher layers by name: their entities must not be imported here. No bench case covers it.

/** A column in which another resource refers to a key quorum. */
interface KeyQuorumReference {
  /** How the reference is named in error messages. */
  readonly as: string;
  readonly isNamed: (context: KeyQuorumContext, id: string) => Promise<boolean>;
}

/** Every reference. Add a line for each resource that has an owner or signers. */
const references: readonly KeyQuorumReference[] = [
  { as: 'the owner of a wallet', isNamed: namedIn('wallets', 'owner_id') },
  { as: 'a signer of a wallet', isNamed: namedIn('wallet_signers', 'signer_id') },
  { as: 'the owner of a policy', isNamed: namedIn('policies', 'owner_id') },
  { as: 'the owner of a condition set', isNamed: namedIn('condition_sets', 'owner_id') },
  { as: 'the owner of an aggregation', isNamed: namedIn('aggregations', 'owner_id') },
  { as: 'the owner of an automation', isNamed: namedIn('wallet_automations', 'owner_id') },
  { as: 'the default of an organization', isNamed: namedIn('organizations', 'default_key_quorum_id') },
  { as: 'a member of another key quorum', isNamed: namedIn('key_quorum_members', 'member') },
];

/** The roles a key quorum still has, as text: `the owner of a wallet`. */
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
