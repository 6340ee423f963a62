import {
  createCustodialWallet as createCustodialWalletVerb,
  custodialWalletView,
} from '../domain/wallets/custodial-wallets/custodial-wallet.ts';
import type { Handler } from '../ports/operation-context.ts';

export const createCustodialWallet: Handler<'createCustodialWallet'> = async ({ body }, context) =>
  custodialWalletView(await createCustodialWalletVerb(context, body), body.chain_type);
