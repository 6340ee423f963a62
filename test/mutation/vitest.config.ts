import { defineConfig } from 'vitest/config';

/** The fast, deterministic tests that must detect mutants of src/engine/policy and of the calldata decoder. */
export default defineConfig({
  test: {
    include: ['test/unit/policy/*.test.ts', 'test/unit/signing/{abi-values,account-calls}.test.ts'],
    exclude: ['test/unit/policy/many-values.test.ts'],
    testTimeout: 30_000,
  },
});
