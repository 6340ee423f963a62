import { readCardConfig } from '../../domain/money/cards/card-config.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getCardConfig'> = async ({ path, query }, context) => ({
  data: await readCardConfig(context, path.app_id, query.environment),
});
