import type { ApiRequest, SeededKey } from './stage.ts';

const body = { method: 'personal_sign', params: { message: 'Release invoice 2041', encoding: 'utf-8' } };

/** Signs a message with a wallet. */
export function signMessage(walletId: string, signWith: readonly SeededKey[] = []): ApiRequest {
  return { operation: 'walletRpc', path: { wallet_id: walletId }, body, signWith };
}

/** The command that signs the same message. */
export function signMessageCommand(walletId: string, signers: string): string {
  return `custos call walletRpc ${walletId} --sign ${signers} method=personal_sign params.message='Release invoice 2041' params.encoding=utf-8`;
}

/** The message as the body of a proposal. */
export const messageBody = body;
