import { createRequire } from 'node:module';

/** `pg` as the server loads it. `test/node_modules` has another copy, which comes with the PostgreSQL of tests. */
export const serverDriver = createRequire(new URL('../../../package.json', import.meta.url))(
  'pg',
) as typeof import('pg');
