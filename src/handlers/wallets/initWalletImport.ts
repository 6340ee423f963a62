import { beginImport } from '../../domain/wallets/wallets/begin-import.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'initWalletImport'> = ({ body }, context) => beginImport(context, body);
