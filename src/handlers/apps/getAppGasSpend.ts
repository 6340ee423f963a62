import { getAppGasSpend } from '../../domain/money/gas-spend/app-gas-spend.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getAppGasSpend'> = async ({ query }, context) => getAppGasSpend(context, query);
