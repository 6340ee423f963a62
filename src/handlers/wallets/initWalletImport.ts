import { beginImport } from '../../domain/wallets/wallets/begin-import.ts';
import type { Handler } from '../../services.ts';

export const initWalletImport: Handler<'initWalletImport'> = ({ body }, context) =>
  beginImport(context, body);
