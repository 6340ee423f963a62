import type { SqlEntityManager } from '@mikro-orm/sql';
import { ApiError } from '../../errors.ts';
import type { WalletBatchCreateResult, WalletBatchItemInput } from '../../generated/schemas.ts';
import type { OperationContext } from '../../services.ts';
import { createWallet } from './create-wallet.ts';
import { generateWalletKey, type WalletKeyMaterial } from './generate-wallet-key.ts';
import { walletView } from './wallet-view.ts';

/**
 * Makes up to 100 wallets, each on its own: what one of them cannot have does not keep the others from being made.
 *
 * Result: one entry for each input, in order.
 */
export async function createWalletsBatch(
  context: OperationContext,
  inputs: readonly WalletBatchItemInput[],
): Promise<WalletBatchCreateResult[]> {
  // All keys at once: deriving them is most of the work and runs on several threads.
  const keys = await Promise.all(inputs.map((input) => generateWalletKey(input.chain_type, context.entropy)));
  const results: WalletBatchCreateResult[] = [];
  try {
    for (const [index, input] of inputs.entries()) {
      results.push(await createOne(context, { index, input, key: keys[index] as WalletKeyMaterial }));
    }
  } finally {
    for (const key of keys) key.secretBytes.fill(0);
  }
  return results;
}

async function createOne(
  context: OperationContext,
  { index, input, key }: { index: number; input: WalletBatchItemInput; key: WalletKeyMaterial },
): Promise<WalletBatchCreateResult> {
  try {
    // A savepoint: a failure undoes this wallet alone.
    const row = await context.em.transactional((em) =>
      createWallet({ ...context, em: em as SqlEntityManager }, input, Promise.resolve(key)),
    );
    return { index, success: true, wallet: walletView(row) };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    return { index, success: false, error: error.message, code: error.code };
  }
}
