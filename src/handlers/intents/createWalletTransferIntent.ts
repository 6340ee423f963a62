import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../operation-context.ts';

export const createWalletTransferIntent: Handler<'createWalletTransferIntent'> = (input, context) =>
  proposeIntent(context, 'transferFromWallet', input);
