import type { ActionUnit } from '../action.ts';
import type { ConditionSource, ResolvedField } from '../condition-source.ts';
import { absent, type Observation, present, unreadable } from '../values.ts';

type Tempo = NonNullable<ActionUnit['tempo']>;

function readTempo(unit: ActionUnit, read: (tempo: Tempo) => Observation): Observation {
  if (unit.undecodable !== undefined) return unreadable(unit.undecodable);
  return unit.tempo === undefined ? absent('not a transaction of type 118') : read(unit.tempo);
}

function numberField(pick: (tempo: Tempo) => bigint | undefined): ResolvedField {
  return {
    kind: 'number',
    read: (unit) =>
      readTempo(unit, (tempo) => {
        const value = pick(tempo);
        return value === undefined ? absent('not set in the transaction') : present(value.toString());
      }),
  };
}

/**
 * The envelope fields of a batched transaction (type 118). `fee_payer_signature` is `true` if the transaction has
 * one.
 */
export const tempoTransaction: ConditionSource = {
  methods: ['eth_sendTransaction', 'eth_signTransaction'],
  resolve({ field }) {
    switch (field) {
      case 'fee_token':
        return {
          kind: 'evm_address',
          read: (unit) =>
            readTempo(unit, ({ feeToken }) =>
              feeToken === undefined ? absent('not set in the transaction') : present(feeToken),
            ),
        };
      case 'fee_payer_signature':
        return {
          kind: 'boolean',
          operators: ['eq'],
          read: (unit) =>
            readTempo(unit, ({ hasFeePayerSignature }) => present(String(hasFeePayerSignature))),
        };
      case 'nonce_key':
        return numberField(({ nonceKey }) => nonceKey);
      case 'valid_before':
        return numberField(({ validBefore }) => validBefore);
      case 'valid_after':
        return numberField(({ validAfter }) => validAfter);
      default:
        return undefined;
    }
  },
};
