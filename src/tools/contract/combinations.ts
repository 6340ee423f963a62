import { type ContractDocument, type ContractResponse, operationsOf } from './contract-document.ts';

/** Something that a document promises and that can be exercised. */
export interface Combination {
  /** `createWallet 400 invalid_data`, `createWallet 200`, `event wallet.created`. */
  readonly name: string;
  /** The code that can be observed: some error codes are not sent, and each of them is the only code of its status. */
  readonly recordedAs: string;
  readonly kind: 'success' | 'error' | 'event';
}

/** Every operation with each of its statuses and error codes, and every webhook event. */
export function combinationsOf(document: ContractDocument): Combination[] {
  return [
    ...operationsOf(document).flatMap(({ operation: { operationId, responses } }) =>
      Object.entries(responses).flatMap(([status, response]) =>
        Number(status) < 400
          ? [{ ...named(`${operationId} ${status}`), kind: 'success' as const }]
          : errorsOf(`${operationId} ${status}`, response),
      ),
    ),
    ...Object.keys(document.webhooks ?? {}).map((type) => ({
      ...named(`event ${type}`),
      kind: 'event' as const,
    })),
  ];
}

/** A response as it is observed. `body`: parsed. */
export function answerName(operationId: string, status: number, body: unknown): string {
  const code = status < 400 ? undefined : (body as { code?: unknown } | null | undefined)?.code;
  return `${operationId} ${status}${typeof code === 'string' ? ` ${code}` : ''}`;
}

function named(name: string): { name: string; recordedAs: string } {
  return { name, recordedAs: name };
}

/** The document has one example for each code, under the code's name. */
function errorsOf(prefix: string, { content }: ContractResponse): Combination[] {
  const examples = Object.entries(content?.['application/json']?.examples ?? {});
  return examples.map(([code, { value }]) => ({
    name: `${prefix} ${code}`,
    recordedAs: (value as { code?: string }).code === undefined ? prefix : `${prefix} ${code}`,
    kind: 'error',
  }));
}
