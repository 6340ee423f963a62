import type { Exchange } from './archive.ts';

/** How policies and owners can decide about a request. */
export const outcomes = [
  'policy allowed',
  'policy denied_by_rule',
  'policy no_rule_for_method',
  'policy no_rule_matched',
  'quorum met_by_one_key',
  'quorum met_by_several_keys',
  'quorum unsigned',
  'quorum wrong_signature',
  'quorum too_few_signatures',
] as const;

const refusals: Readonly<Record<string, (typeof outcomes)[number]>> = {
  missing_or_empty_authorization_header: 'quorum unsigned',
  zero_correct_authorization_signatures: 'quorum wrong_signature',
  insufficient_correct_authorization_signatures: 'quorum too_few_signatures',
  incorrect_quantity_of_authorization_signatures: 'quorum too_few_signatures',
};

/** The decisions that an exchange shows. `prefix`: the word in the headers of its client. */
export function outcomesOf(exchange: Exchange, prefix: string): string[] {
  const { status, authorizedBy, allowedBy, policyOutcome, requestHeaders, responseBody } = exchange;
  if (status >= 400) {
    const { code = '' } = (responseBody ?? {}) as { code?: string };
    const refusal = refusals[code];
    const denial =
      code === 'policy_violation' && policyOutcome !== undefined ? [`policy ${policyOutcome}`] : [];
    return [...denial, ...(refusal === undefined ? [] : [refusal])];
  }
  const header = requestHeaders.get(`${prefix}-authorization-signature`);
  // Without the sandbox's note of the keys, the commas of the header; where it was removed, one signature at least.
  const keys = authorizedBy.length || (header === undefined ? 0 : header.split(',').length);
  return [
    ...(allowedBy.length > 0 ? ['policy allowed'] : []),
    ...(keys === 1 ? ['quorum met_by_one_key'] : []),
    ...(keys > 1 ? ['quorum met_by_several_keys'] : []),
  ];
}
