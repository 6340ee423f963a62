import { exchangeToken } from '../../domain/wallets/oauth/exchange-token.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'exchangeOauthToken'> = ({ body }, context) => exchangeToken(context, body);
