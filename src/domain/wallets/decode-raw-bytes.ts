import { looseHexToBytes } from '../../crypto/encoding.ts';
import type { ActionUnit, PolicyAction } from '../../policy/action.ts';
import { decodeRawSign, type RawSignParams } from '../../signing/raw-sign.ts';
import { decodeSuiIntentMessage } from '../../signing/sui/transaction.ts';
import { decodeTronRawData } from '../../signing/tron/raw-data.ts';

/**
 * What a `raw_sign` request does. Bytes that are a Tron or Sui transaction are judged as one
 * (`signTransactionBytes`), all else as a message (`signRawMessageBytes`).
 *
 * @throws SigningInputError
 */
export function decodeRawSignAction(chainType: string, params: RawSignParams): PolicyAction {
  const { message } = decodeRawSign(params);
  // CHOICE: on XRPL a hash stands for a transaction that is not shown, so that only conditions on time can hold.
  if (chainType === 'xrpl') {
    return {
      method: 'xrpl_signTransaction',
      units: [{ label: 'hash', undecodable: 'only a hash is signed' }],
    };
  }
  const units = message === undefined ? undefined : transactionUnits(chainType, message);
  if (units !== undefined) return { method: 'signTransactionBytes', units };
  return {
    method: 'signRawMessageBytes',
    units: [
      message === undefined
        ? { label: 'hash', undecodable: 'only a hash was given' }
        : { label: 'message', messageBytes: message },
    ],
  };
}

function transactionUnits(chainType: string, bytes: Uint8Array): readonly ActionUnit[] | undefined {
  if (chainType === 'tron') return decodeTronUnits(bytes);
  return chainType === 'sui' ? decodeSuiUnits(bytes) : undefined;
}

/** The contract in a Tron transaction's raw data; undefined when the bytes are no such transaction. */
export function decodeTronUnits(bytes: Uint8Array): readonly ActionUnit[] | undefined {
  let rawData: ReturnType<typeof decodeTronRawData>;
  try {
    rawData = decodeTronRawData(bytes);
  } catch {
    return [{ label: 'transaction', undecodable: 'the transaction is of another kind' }];
  }
  return rawData?.contract.map(({ type, ...contract }, index) => {
    const { data, ...members } = contract as Record<string, string | number>;
    const fields = Object.entries(members).map(([name, value]): [string, string | bigint] => [
      name,
      typeof value === 'number' ? BigInt(value) : value,
    ]);
    return {
      label: `contract ${index}`,
      tronContract: {
        type,
        fields: Object.fromEntries(fields),
        data: data === undefined ? undefined : looseHexToBytes(String(data)),
      },
    };
  });
}

function decodeSuiUnits(bytes: Uint8Array): readonly ActionUnit[] | undefined {
  try {
    const transaction = decodeSuiIntentMessage(bytes);
    if (transaction === undefined) return undefined;
    const suiCommands = transaction.commands.map(({ commandName: name, ...rest }) => ({ name, ...rest }));
    return [{ label: 'transaction', suiCommands }];
  } catch {
    return [{ label: 'transaction', undecodable: 'a transaction with commands that are not known' }];
  }
}
