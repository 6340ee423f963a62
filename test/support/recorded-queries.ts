import { CompiledQuery, type KyselyPlugin } from 'kysely';
import type { OperationContext } from '../../src/operation-context.ts';
import type { DatabaseKind } from './databases.ts';

type EntityManager = OperationContext['em'];

/** An EntityManager whose Kysely queries are written down, in the order in which they were run. */
export function recordQueries(em: EntityManager): { em: EntityManager; queries: CompiledQuery[] } {
  const queries: CompiledQuery[] = [];
  const executor = em.getKysely().getExecutor();
  const recorder: KyselyPlugin = {
    transformQuery({ node, queryId }) {
      queries.push(executor.compileQuery(node, queryId));
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  const recording = new Proxy(em, {
    get(target, name) {
      if (name === 'getKysely') return () => target.getKysely().withPlugin(recorder);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { em: recording, queries };
}

/**
 * How the database would run a query, line by line. PostgreSQL is told to avoid reading whole tables and sorting, which
 * it would prefer on the small tables of a test; where it does so all the same, no index fits.
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
