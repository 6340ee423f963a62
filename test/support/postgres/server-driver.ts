import { createRequire } from 'node:module';

/**
 * The package `pg` that the server loads. `test/node_modules` has another copy, which belongs to the PostgreSQL of
 * the tests.
 */
export const serverDriver = createRequire(new URL('../../../package.json', import.meta.url))(
  'pg',
) as typeof import('pg');
