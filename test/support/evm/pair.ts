import { type Hex, numberToHex } from 'viem';
import { startSandbox } from '../../../src/testing/testing.ts';
import { isLong } from '../../figures/figure.ts';
import { startAnvil } from '../anvil.ts';

// A simulated chain and anvil, which differ in nothing that a program can see.

export const CHAIN_ID = 31_337;
/** Wei per gas of simulated chains. */
export const BASE_FEE = 50_000_000n;
const GAS_LIMIT = 30_000_000;
const NO_ADDRESS = `0x${'0'.repeat(40)}`;

/** What a node answers to one call. */
export type Answer =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } };

export type Call = readonly [method: string, ...params: unknown[]];

/** Answers several calls, in order. */
export type Node = (...calls: readonly Call[]) => Promise<readonly Answer[]>;

export interface Pair extends AsyncDisposable {
  readonly here: Node;
  readonly there: Node;
  /** Makes a block with the same number and the same time on both. */
  mine(): Promise<void>;
}

/** Whether a busy machine may have ended the call, which then changed nothing. */
export const isTimeout = (answer: Answer): boolean =>
  'error' in answer && /timeout|timed out/.test(answer.error.message);
const MAX_TRIES = 5;
/** How long an answer may take. A long run has all the time it needs, also beside other work. */
const MAX_WAIT_MS = isLong ? 1_800_000 : 120_000;

/** A node at an address, which is asked again for what took it too long. */
function nodeAt(url: string): Node {
  const ask = askAt(url);
  return async (...calls) => {
    const answers = [...(await ask(...calls))];
    for (let tries = 1; tries < MAX_TRIES && answers.some(isTimeout); tries += 1) {
      for (const [index, answer] of answers.entries()) {
        if (isTimeout(answer)) [answers[index]] = (await ask(calls[index]!)) as [Answer];
      }
    }
    return answers;
  };
}

/** Answers the calls of a batch, which nodes answer in any order. */
function askAt(url: string): Node {
  return async (...calls) => {
    if (calls.length === 0) return [];
    const body = calls.map(([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params }));
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(MAX_WAIT_MS),
    }).catch((error: unknown) => {
      throw new Error(`no answer to ${JSON.stringify(body).slice(0, 500)}`, { cause: error });
    });
    const answers = (await response.json()) as (Answer & { id: number })[];
    return answers.sort((one, other) => one.id - other.id);
  };
}

export function resultOf(answer: Answer | undefined): unknown {
  if (answer !== undefined && 'result' in answer) return answer.result;
  throw new Error(`expected a result, got ${JSON.stringify(answer)}`);
}

export async function openPair(): Promise<Pair> {
  // Transactions wait for `evm_mine`, as with anvil's `--no-mining`.
  const sandbox = await startSandbox({
    clock: 'frozen',
    rpcPort: 0,
    seedData: false,
    seed: 'pair',
    record: false,
  });
  const here = nodeAt(`${sandbox.rpcUrl}/${CHAIN_ID}`);
  const [head] = await here(['eth_getBlockByNumber', 'latest', false]);
  const { number, timestamp } = resultOf(head) as { number: Hex; timestamp: Hex };
  const anvil = await startAnvil(CHAIN_ID, 'osaka', [
    ...['--number', String(BigInt(number)), '--timestamp', String(Number(timestamp))],
    ...['--base-fee', String(BASE_FEE), '--gas-limit', String(GAS_LIMIT), '--order', 'fifo'],
    ...['--enable-tx-gas-limit', '--disable-min-priority-fee', '--accounts', '1', '--steps-tracing'],
  ]);
  const there = nodeAt(anvil.url);
  // The clock of a seeded sandbox stands still, so all blocks have the same time.
  await there(['anvil_setCoinbase', NO_ADDRESS], ['anvil_setBlockTimestampInterval', 0]);
  return {
    here,
    there,
    async mine() {
      await Promise.all([here(['evm_mine']), there(['evm_mine'])]);
      // A full block raises it, and the pool of anvil then refuses transactions that ours accepts.
      await there(['anvil_setNextBlockBaseFeePerGas', numberToHex(BASE_FEE)]);
    },
    async [Symbol.asyncDispose]() {
      await sandbox.close();
      await anvil[Symbol.asyncDispose]();
    },
  };
}
