import { createWalletsBatch as createBatch } from '../../domain/wallets/wallets/create-wallets-batch.ts';
import type { Handler } from '../../operation-context.ts';

export const createWalletsBatch: Handler<'createWalletsBatch'> = async ({ body }, context) => ({
  results: await createBatch(context, body.wallets),
});
