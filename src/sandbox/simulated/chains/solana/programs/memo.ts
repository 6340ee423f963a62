import { bytesToUtf8 } from '../../../../../engine/crypto/encoding.ts';
import { InstructionFailureError } from '../failures.ts';
import type { Invocation } from '../runtime.ts';

/** Runs the memo program: each account must sign, and the data must be UTF-8. */
export function runMemo({ accounts, data, log }: Invocation): void {
  if (accounts.length > 0) log('Program log: Signed by:');
  for (const { address, isSigner } of accounts) if (isSigner) log(`Program log: ${address}`);
  if (accounts.some(({ isSigner }) => !isSigner))
    throw new InstructionFailureError('MissingRequiredSignature');
  const text = bytesToUtf8(data);
  if (text === undefined) throw new InstructionFailureError('InvalidInstructionData');
  log(`Program log: Memo (len ${data.length})`);
  log(`Program log: ${text}`);
}
