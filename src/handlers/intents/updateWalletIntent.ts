import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../operation-context.ts';

export const updateWalletIntent: Handler<'updateWalletIntent'> = (input, context) =>
  proposeIntent(context, 'updateWallet', input);
