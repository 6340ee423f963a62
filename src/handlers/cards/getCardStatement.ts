import { readStatement } from '../../domain/money/cards/card-transactions.ts';
import { statementFile } from '../../domain/money/cards/statement-file.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getCardStatement'> = async ({ path, query }, context) => {
  const { card_id: cardId, period } = path;
  const posted = await readStatement(context, cardId, { environment: query.environment, period });
  return statementFile(period, posted);
};
