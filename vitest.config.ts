import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const testing = join(import.meta.dirname, 'src', 'testing');

export default defineConfig({
  resolve: {
    alias: [
      { find: /^custos\/testing$/, replacement: join(testing, 'testing.ts') },
      { find: /^custos\/testing\/(\w+)$/, replacement: join(testing, '$1.ts') },
    ],
  },
  test: {
    // The example, and the tests that `custos init vitest` writes, run with the library as it is here.
    include: ['test/**/*.test.ts', 'examples/**/*.test.ts', 'templates/vitest/**/*.test.ts'],
    globalSetup: ['test/support/postgres/postgres-on-demand.ts', 'test/ledger/global-setup.ts'],
    setupFiles: ['test/ledger/setup-file.ts'],
    testTimeout: 90_000,
    hookTimeout: 120_000,
    // Two cores: more workers only make the tests that measure patience (PostgreSQL, HTTPS) time out.
    maxWorkers: 2,
    // The files of a worker share its modules, which takes less than half the time; a file leaves nothing behind in them.
    isolate: false,
  },
});
