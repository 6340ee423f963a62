import { CompiledQuery, type Kysely, sql } from 'kysely';
import type { Tables } from '../../src/domain/tables.ts';
import type { OperationContext } from '../../src/ports/operation-context.ts';
import type { Database } from '../../src/storage/open-database.ts';
import type { DatabaseKind } from '../support/databases.ts';

type EntityManager = OperationContext['em'];

/** Runs `work` and returns the query plan of each of its statements. */
export async function planOf(
  { kind, orm }: Pick<Database, 'kind' | 'orm'>,
  work: () => Promise<unknown>,
): Promise<string[]> {
  const kysely: Kysely<Tables> = orm.em.fork().getKysely<Tables>();
  const statements = await recordStatements(kysely, work);
  const plans: string[] = [];
  for (const statement of statements) {
    const explain = `${kind === 'sqlite' ? 'explain query plan' : 'explain'} ${statement.sql}`;
    const { rows } = await kysely.executeQuery<Record<string, unknown>>({ ...statement, sql: explain });
    plans.push(rows.map((row) => String(row.detail ?? row['QUERY PLAN'])).join('\n'));
  }
  return plans;
}

/** The compiled statements that `work` sends through `kysely`, without those of transactions that it opens. */
export async function recordStatements(
  kysely: Kysely<Tables>,
  work: () => Promise<unknown>,
): Promise<CompiledQuery[]> {
  const executor = kysely.getExecutor();
  const execute = executor.executeQuery;
  const statements: CompiledQuery[] = [];
  executor.executeQuery = function record(query: CompiledQuery, ...rest: never[]) {
    statements.push(query);
    return execute.call(executor, query, ...rest);
  } as typeof execute;
  try {
    await work();
  } finally {
    executor.executeQuery = execute;
  }
  return statements;
}

/**
 * How the database would run a query, line by line. PostgreSQL is configured to avoid full scans and sorting, which
 * it would prefer on the small tables of a test; if it still does so, no index fits.
 */
export async function explain(
  em: EntityManager,
  kind: DatabaseKind,
  query: CompiledQuery,
): Promise<string[]> {
  return em.transactional(async (inner) => {
    const kysely = (inner as EntityManager).getKysely();
    const run = (sql: string, parameters: readonly unknown[] = []) =>
      kysely.executeQuery<Record<string, string>>(CompiledQuery.raw(sql, [...parameters]));
    if (kind === 'sqlite') {
      const { rows } = await run(`explain query plan ${query.sql}`, query.parameters);
      return rows.map((row) => row.detail ?? '');
    }
    for (const way of ['seqscan', 'bitmapscan', 'sort']) await run(`set local enable_${way} = off`);
    const { rows } = await run(`explain ${query.sql}`, query.parameters);
    return rows.map((row) => row['QUERY PLAN'] ?? '');
  });
}

/**
 * About twenty thousand wallets and policies of the app `acme`, inserted as rows, because only the query plans are
 * tested.
 */
export async function plantManyWallets(
  { kind, orm }: Pick<Database, 'kind' | 'orm'>,
  count = 20_000,
): Promise<void> {
  const em = orm.em.fork();
  await em.execute(`
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
    insert into wallets
      (id, app_id, chain_type, address, external_id, owner_id, policy_id, entity_id, entity_type, created_at_ms, archived_at_ms)
    select
      'wallet-' || n, 'acme', case when n % 500 = 0 then 'near' else 'ethereum' end, 'address-' || n,
      case when n % 7 = 0 then 'external-' || n end, case when n % 4 = 0 then 'quorum-' || (n % 8) end,
      case when n % 100 = 0 then 'policy-' || n end, case when n % 4 = 1 then 'entity-' || (n % 8) end,
      case when n % 4 = 1 then 'user' end, n / 3, case when n % 50 = 3 then n end
    from numbers`);
  await em.execute(`
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count / 4})
    insert into wallet_signers (wallet_id, position, signer_id, override_policy_id)
    select 'wallet-' || n, 0, 'quorum-' || n, case when n % 10 = 0 then 'policy-' || n end from numbers`);
  await em.execute(`
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
    insert into policies (id, app_id, name, chain_type, rules_digest, created_at_ms)
    select 'policy-' || n, 'acme', 'Policy', 'ethereum', 'digest-' || n, n from numbers`);
  await em.execute(`
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count / 4})
    insert into wallet_automation_attachments (id, wallet_id, automation_id, created_at_ms, updated_at_ms)
    select 'attachment-' || n, 'wallet-' || n, 'automation', n, n from numbers`);
  const quorum = {
    id: 'quorum-4',
    app_id: 'acme',
    display_name: null,
    authorization_threshold: 1,
    implicit_for: null,
    created_at_ms: 1,
  };
  const member = { key_quorum_id: 'quorum-4', position: 0, kind: 'user', member: 'user-4' };
  await em.getKysely<Tables>().insertInto('key_quorums').values(quorum).execute();
  await em.getKysely<Tables>().insertInto('key_quorum_members').values(member).execute();
  await sql.raw(kind === 'sqlite' ? 'analyze' : 'vacuum analyze').execute(em.getKysely<Tables>());
}
