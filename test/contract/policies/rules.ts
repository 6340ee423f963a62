import type { CreatePolicyRequest } from '../../../src/generated/schemas.ts';

export type RuleInput = CreatePolicyRequest['rules'][number];

/** A rule for messages that contain a word. */
export function messageRule(word: string, action: RuleInput['action'] = 'ALLOW'): RuleInput {
  return {
    name: `messages with ${word}`,
    method: 'personal_sign',
    action,
    conditions: [{ field_source: 'message', field: 'content', operator: 'contains', value: word }],
  };
}

/** A policy of rules for messages with these words, in this order. */
export function messagePolicy(words: readonly string[]): CreatePolicyRequest {
  return {
    version: '1.0',
    name: 'Words',
    chain_type: 'ethereum',
    rules: words.map((word) => messageRule(word)),
  };
}

export const unknownId = 'z'.repeat(24);
export const seededStartMs = Date.UTC(2026, 0, 1);
