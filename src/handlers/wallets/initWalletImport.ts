import { beginImport } from '../../domain/wallets/wallets/begin-import.ts';
import type { Handler } from '../../operation-context.ts';

export const initWalletImport: Handler<'initWalletImport'> = ({ body }, context) =>
  beginImport(context, body);
