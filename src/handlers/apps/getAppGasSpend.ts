import { getAppGasSpend as read } from '../../domain/money/gas-spend/app-gas-spend.ts';
import type { Handler } from '../../operation-context.ts';

export const getAppGasSpend: Handler<'getAppGasSpend'> = async ({ query }, context) => read(context, query);
