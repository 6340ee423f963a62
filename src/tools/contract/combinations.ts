import { type ContractDocument, type ContractResponse, operationsOf } from './contract-document.ts';

/** A documented result that can be tested. */
export interface Combination {
  /** A name such as `createWallet 400 invalid_data`, `createWallet 200` or `event wallet.created`. */
  readonly name: string;
  /**
   * The name under which it is observed. Some error codes are not sent, and each of them is the only code of its
   * status.
   */
  readonly recordedAs: string;
  readonly kind: 'success' | 'error' | 'event';
}

/** Returns every operation with each of its statuses and error codes, and every webhook event. */
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

/** The name of an observed response. `body` is parsed. */
export function answerName(operationId: string, status: number, body: unknown): string {
  const code = status < 400 ? undefined : (body as { code?: unknown } | null | undefined)?.code;
  return `${operationId} ${status}${typeof code === 'string' ? ` ${code}` : ''}`;
}

function named(name: string): { name: string; recordedAs: string } {
  return { name, recordedAs: name };
}

/** For each error code, the document has one example whose name is the code. */
function errorsOf(prefix: string, { content }: ContractResponse): Combination[] {
  const examples = Object.entries(content?.['application/json']?.examples ?? {});
  return examples.map(([code, { value }]) => ({
    name: `${prefix} ${code}`,
    recordedAs: (value as { code?: string }).code === undefined ? prefix : `${prefix} ${code}`,
    kind: 'error',
  }));
}
