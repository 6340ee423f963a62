import { createWalletsBatch } from '../../domain/wallets/wallets/create-wallets-batch.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createWalletsBatch'> = async ({ body }, context) => ({
  results: await createWalletsBatch(context, body.wallets),
});
