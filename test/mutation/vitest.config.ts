import { defineConfig } from 'vitest/config';

/** What judges a mutant of src/policy, and of the reader of calldata that it stands on: tests that are quick and the same in every run. */
export default defineConfig({
  test: {
    include: ['test/unit/policy/*.test.ts', 'test/unit/signing/{abi-values,account-calls}.test.ts'],
    exclude: ['test/unit/policy/many-values.test.ts'],
    testTimeout: 30_000,
  },
});
