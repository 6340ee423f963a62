import { describe, expect, test } from 'vitest';
import { isMoved } from '../../../src/domain/base/restores/restores.ts';
import { isUnavailable } from '../../../src/errors.ts';
import { isConnectionLost, isSessionLost, markUnavailable } from '../../../src/storage/database-errors.ts';
import { schemaOf, searchPathOf } from '../../../src/storage/schema/cell-schema.ts';
import { findClusterFault, findOwner } from '../../../src/storage/schema/citus.ts';
import type { AskDatabase } from '../../../src/storage/schema/identify-database.ts';

/** Answers each statement with the rows of the first key that it contains. */
function database(
  answers: Readonly<Record<string, (() => readonly object[]) | readonly object[]>>,
): AskDatabase {
  return async <Row>(sql: string) => {
    const [, found] = Object.entries(answers).find(([part]) => sql.includes(part)) ?? [];
    if (found === undefined) throw new Error(`not expected: ${sql}`);
    return (typeof found === 'function' ? found() : found) as readonly Row[];
  };
}

const citus = { "extname = 'citus'": [{ has: 1 }] };

describe('which databases of a cluster servers may use', () => {
  test.each([
    ['a database without Citus', { "extname = 'citus'": [] }, undefined],
    [
      'the coordinator',
      { ...citus, pg_dist_local_group: [{ group: 0, tables: 82, by_column: null }] },
      undefined,
    ],
    [
      'a worker without tables of the cluster in this schema',
      { ...citus, pg_dist_local_group: [{ group: 2, tables: 0, by_column: null }] },
      undefined,
    ],
    [
      'a worker',
      { ...citus, pg_dist_local_group: [{ group: 2, tables: 82, by_column: null }] },
      /is a worker/,
    ],
    [
      'tables that are distributed by a column',
      { ...citus, pg_dist_local_group: [{ group: 0, tables: 82, by_column: 'wallets' }] },
      /single tables \(wallets\)/,
    ],
  ])('%s', async (_, answers, expected) => {
    const found = await findClusterFault(database(answers));
    if (expected === undefined) expect(found).toBeUndefined();
    else expect(found?.text).toMatch(expected);
  });
});

test.each([
  ['-c search_path=eu1', 'eu1', 'eu1'],
  ['-c search_path=eu1,public -c statement_timeout=9', 'eu1,public', 'eu1'],
  ['-c search_path=eu -c Search-Path=eu_1', 'eu_1', 'eu_1'],
  ['-c search_path=eu-1', 'eu-1', undefined],
  ['-c search_path=eu.1', 'eu.1', undefined],
  ['-c search_path="eu"', '"eu"', undefined],
  ['-c search_path=Eu', 'Eu', undefined],
  ['-c search_path=eu\\ 1', 'eu\\ 1', undefined],
  [`-c search_path=${'e'.repeat(64)}`, 'e'.repeat(64), undefined],
  ['-c statement_timeout=9', undefined, undefined],
])('the schema that `options=%s` names is never part of a name', (options, searchPath, schema) => {
  const url = new URL('postgresql://db/custos');
  url.searchParams.set('options', options);
  expect([searchPathOf(url.href), schemaOf(url.href)]).toEqual([searchPath, schema]);
});

test('the schema of a cluster is found by its quoted name', async () => {
  const fault = findClusterFault(
    database({ ...citus, 'quote_ident(current_schema())': [{ group: 0, tables: 82, by_column: null }] }),
  );
  expect(await fault).toBeUndefined();
});

describe('the owner of a distributed schema', () => {
  const owner = { system: '7001', timeline: 1 };

  test('a schema that is not distributed has none', async () => {
    expect(await findOwner(database({ pg_dist_placement: [] }))).toBeUndefined();
  });

  test('is never mixed of two nodes while the schema is moved', async () => {
    const groups = [1, 2, 2];
    const systems = ['7001', '7002'];
    const asked = database({
      pg_dist_placement: () => [{ group: groups.shift() }],
      database_identity: () => [{ ...owner, system: systems.shift() }],
    });
    expect(await findOwner(asked)).toMatchObject({ group: 2, system: '7002' });
  });

  test('is unknown while it changes with each statement', async () => {
    const groups = [1, 2, 3, 4, 5];
    const asked = database({
      pg_dist_placement: () => [{ group: groups.shift() }],
      database_identity: [owner],
    });
    await expect(findOwner(asked)).rejects.toThrow('is being moved');
  });
});

test.each([
  ['the same node', '1/2/3 1=7001', '1/2/3 1=7001', false],
  ['another node of the cluster', '1/2/3 1=7001', '1/2/3 2=7002', true],
  ['a schema that was distributed', '1/2/3', '1/2/3 2=7002', true],
  ['a node that was replaced by one with other data', '1/2/3 1=7001', '1/2/3 1=7002', false],
  ['another coordinator', '1/2/3 1=7001', '4/2/3 2=7002', false],
  ['another table on the coordinator', '1/2/3 1=7001', '1/2/4 2=7002', false],
  ['a schema that is no longer distributed', '1/2/3 1=7001', '1/2/3', false],
  ['a plain database', '1/2/3', '1/2/3', false],
  ['another plain database', '1/2/3', '1/2/4', false],
])('a move within a cluster: %s', (_, before, after, expected) => {
  const identity = (cluster: string) => ({ cluster, timeline: 1 });
  expect(isMoved(identity(before), identity(after))).toBe(expected);
});

test.each([
  ['08006', 'connection to the remote node custos@10.0.0.2:5432 failed', true],
  ['XX000', 'SSL SYSCALL error: EOF detected', true],
  ['XX000', 'server closed the connection unexpectedly', true],
  ['XX000', 'could not commit transaction for shard 102008 on at least one active node', true],
  ['XX000', 'could not extend file "base/16384/108822": No space left on device', true],
  ['58030', 'failed to complete COPY on 10.0.0.2:5432', true],
  ['XX000', 'cache lookup failed for relation 16384', true],
  ['XX000', 'cache lookup failed for type 16384', false],
])('a node that was lost, or whose tables were dropped, is unavailable: %s %s', (code, message, expected) => {
  const error = markUnavailable(Object.assign(new Error(message), { code, severity: 'ERROR' }));
  expect([isUnavailable(error), isConnectionLost(error)]).toEqual([expected, false]);
  // Another node may answer the next attempt.
  if (code === '08006') expect(isSessionLost(error)).toBe(true);
});
