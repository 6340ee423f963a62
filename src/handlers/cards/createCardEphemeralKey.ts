import { ephemeralKeyOf, makeEphemeralKey } from '../../domain/money/cards/card-transactions.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'createCardEphemeralKey', string> = ({ path, body }, context) =>
  makeEphemeralKey(context, path.card_id, body);

export const run: PreparedHandler<'createCardEphemeralKey', string> = async (_input, _context, prepared) => ({
  data: { ephemeral_key_secret: ephemeralKeyOf(prepared) },
});
