import type { ConditionSource } from '../condition-source.ts';
import { ORDERING } from '../operators.ts';
import { absent, present, unreadable } from '../values.ts';

const PREFIX = 'aggregation.';
/** `in_condition_set` is excluded, because condition sets are read before running totals. */
const OPERATORS = ORDERING.filter((operator) => operator !== 'in_condition_set');

/** Returns the id from a field `aggregation.<id>`, or undefined for any other field. */
export function referencedAggregation(field: string): string | undefined {
  const id = field.startsWith(PREFIX) ? field.slice(PREFIX.length) : '';
  return /^[a-z0-9]{1,64}$/.test(id) ? id : undefined;
}

/** The running total of an aggregation, including this request. */
export const reference: ConditionSource = {
  methods: ['eth_signTransaction', 'eth_signUserOperation'],
  resolve({ field }, action) {
    const id = referencedAggregation(field);
    if (id === undefined) return undefined;
    return {
      kind: 'number',
      operators: OPERATORS,
      read: (_unit, { aggregation }) => {
        const total = aggregation(id);
        if (total === 'unreadable')
          return unreadable('the amount that the request adds to the total cannot be read');
        if (total !== undefined) return present(total.toString());
        // Deleting an aggregation must not lift the limit of a DENY.
        return (action === 'DENY' ? unreadable : absent)('the aggregation was deleted');
      },
    };
  },
};
