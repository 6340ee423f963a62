import { setImmediate } from 'node:timers/promises';
import { ApiError } from '../../../errors.ts';
import type { WalletBatchCreateResult, WalletBatchItemInput } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { inSavepoint } from '../../../storage/savepoint.ts';
import { createWallet } from './create-wallet.ts';
import { generateWalletKey, type WalletKeyMaterial } from './generate-wallet-key.ts';
import { walletView } from './wallet-view.ts';

/** Keys are derived and stored in chunks of this size, so that other requests run in between. */
const AT_ONCE = 10;

/**
 * Creates up to 100 wallets independently: a refusal for one does not affect the others.
 *
 * Result: one entry for each input, in order.
 */
export async function createWalletsBatch(
  context: OperationContext,
  inputs: readonly WalletBatchItemInput[],
): Promise<WalletBatchCreateResult[]> {
  const keys = await generateKeys(context, inputs);
  const results: WalletBatchCreateResult[] = [];
  try {
    for (const [index, input] of inputs.entries()) {
      if (index % AT_ONCE === 0) await setImmediate();
      results.push(await createOne(context, { index, input, key: keys[index] as WalletKeyMaterial }));
    }
  } finally {
    for (const key of keys) key.secretBytes.fill(0);
  }
  return results;
}

/** Concurrently: deriving keys is most of the work and runs on several threads. */
async function generateKeys(
  { entropy }: Pick<OperationContext, 'entropy'>,
  inputs: readonly WalletBatchItemInput[],
): Promise<WalletKeyMaterial[]> {
  const keys: WalletKeyMaterial[] = [];
  for (let from = 0; from < inputs.length; from += AT_ONCE) {
    const some = inputs.slice(from, from + AT_ONCE);
    keys.push(...(await Promise.all(some.map((input) => generateWalletKey(input.chain_type, entropy)))));
    await setImmediate();
  }
  return keys;
}

async function createOne(
  context: OperationContext,
  { index, input, key }: { index: number; input: WalletBatchItemInput; key: WalletKeyMaterial },
): Promise<WalletBatchCreateResult> {
  try {
    // A refusal rolls back only this wallet.
    const row = await inSavepoint(context.em, (em) =>
      createWallet({ ...context, em }, input, Promise.resolve(key)),
    );
    return { index, success: true, wallet: walletView(row) };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    return { index, success: false, error: error.message, code: error.code };
  }
}
