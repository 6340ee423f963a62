import type { ConditionSource } from '../condition-source.ts';
import { absent, present, unreadable } from '../values.ts';

/** The smart contract to which an EIP-7702 authorization delegates the account. */
export const ethereum7702Authorization: ConditionSource = {
  methods: ['eth_sign7702Authorization'],
  resolve({ field }) {
    if (field !== 'contract') return undefined;
    return {
      kind: 'evm_address',
      read: ({ undecodable, authorization7702 }) => {
        if (undecodable !== undefined) return unreadable(undecodable);
        return authorization7702 === undefined
          ? absent('not a 7702 authorization')
          : present(authorization7702.contract);
      },
    };
  },
};
