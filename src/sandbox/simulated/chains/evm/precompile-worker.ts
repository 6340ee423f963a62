import { parentPort } from 'node:worker_threads';
import { createEVM } from '@ethereumjs/evm';
import { chainRules } from './chain-rules.ts';

// The entry point of the thread that runs long precompile calls. See `precompiles.ts`.

export interface PrecompileCall {
  /** 40 hex digits. */
  readonly address: string;
  readonly data: Uint8Array;
  readonly gasLimit: bigint;
}

export interface PrecompileResult {
  readonly gasUsed: bigint;
  readonly returned: Uint8Array;
  /** The message of the EVM's error. */
  readonly error: string | undefined;
}

// No precompile depends on the chain id.
const loaded = createEVM({ common: chainRules(1n) });

parentPort?.on('message', async ({ address, data, gasLimit }: PrecompileCall) => {
  const evm = await loaded;
  const run = evm.precompiles.get(address)!;
  const { executionGasUsed, returnValue, exceptionError } = await run({
    ...{ data, gasLimit, common: evm.common, _EVM: evm },
  });
  parentPort?.postMessage({
    ...{ gasUsed: executionGasUsed, returned: returnValue, error: exceptionError?.error },
  } satisfies PrecompileResult);
});
