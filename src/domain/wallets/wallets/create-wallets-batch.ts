import { setImmediate } from 'node:timers/promises';
import { ApiError } from '../../../errors.ts';
import type { WalletBatchCreateResult, WalletBatchItemInput } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type Planned, unwrapPlan } from '../../../planned.ts';
import { inSavepoint } from '../../../storage/savepoint.ts';
import type { NewAuthority } from '../wallet-authorities/new-authority.ts';
import { createWallet } from './create-wallet.ts';
import { createWalletKeys, KEYS_AT_ONCE, type KeyOfWallet } from './create-wallet-key.ts';
import { walletView } from './wallet-view.ts';

/**
 * Creates up to 100 wallets independently: a refusal for one does not affect the others.
 *
 * `authorities`: under which their keys are sealed, by index. Result: one entry for each input, in order.
 */
export async function createWalletsBatch(
  context: OperationContext,
  inputs: readonly WalletBatchItemInput[],
  authorities: Planned<readonly NewAuthority[]> = { value: [] },
): Promise<WalletBatchCreateResult[]> {
  const types = inputs.map((input) => input.chain_type);
  const keys = await createWalletKeys(context, types, unwrapPlan(authorities));
  const results: WalletBatchCreateResult[] = [];
  for (const [index, input] of inputs.entries()) {
    // Other requests run in between.
    if (index % KEYS_AT_ONCE === 0) await setImmediate();
    results.push(await createOne(context, { index, input, key: keys[index] as KeyOfWallet }));
  }
  return results;
}

async function createOne(
  context: OperationContext,
  { index, input, key }: { index: number; input: WalletBatchItemInput; key: KeyOfWallet },
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
