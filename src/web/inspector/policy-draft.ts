/** The initial draft of the page. */
export const explainDraft = {
  policy: JSON.stringify(
    {
      chain_type: 'ethereum',
      rules: [
        {
          name: 'Polite messages',
          method: 'personal_sign',
          action: 'ALLOW',
          conditions: [
            { field_source: 'message', field: 'content', operator: 'starts_with', value: 'Please' },
          ],
        },
      ],
    },
    null,
    2,
  ),
  request: JSON.stringify(
    { method: 'personal_sign', params: { message: 'Give me', encoding: 'utf-8' } },
    null,
    2,
  ),
};

/**
 * Parses the text of an object.
 *
 * @throws Error that names `what` for any other text.
 */
export function readJson(text: string, what: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} is not JSON: ${(error as Error).message}`, { cause: error });
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new Error(`expected ${what} to be a JSON object, got \`${text.slice(0, 100)}\``);
}

/** The part of a policy that is replayed: its chain type and rules. */
export function replayDraft({ chain_type, rules }: Record<string, unknown>): Record<string, unknown> {
  return { chain_type, rules };
}
