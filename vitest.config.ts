import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/postgres/postgres-on-demand.ts', 'test/ledger/global-setup.ts'],
    setupFiles: ['test/ledger/setup-file.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores: more workers only make the tests that measure patience (PostgreSQL, HTTPS) time out.
    maxWorkers: 2,
    // The files of a worker share its modules, which takes less than half the time; a file leaves nothing behind in them.
    isolate: false,
  },
});
