import { depositConfigView } from '../../domain/money/crypto-deposits/deposit-config-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getCryptoDepositConfig'> = async (_, context) => depositConfigView(context);
