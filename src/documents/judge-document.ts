import type { Finding, Judge, SeenExchange } from '../verify/judge-exchange.ts';
import type { OpenedDocument } from './open-document.ts';
import { requestFault, responseFault } from './validate-message.ts';

/** Compares exchanges with any OpenAPI document, by the rules of `custos verify`. */
export function judgeDocument(opened: OpenedDocument): Judge {
  const find = ({ method, target }: Pick<SeenExchange, 'method' | 'target'>) =>
    opened.index.find(method, target.split('?')[0] ?? '/');
  return {
    operationOf: (exchange) => find(exchange)?.operation.id,
    judge(exchange): Finding[] {
      const { method, target, status } = exchange;
      const found = find(exchange);
      if (found === undefined) {
        if (status === 404 || status === 405) return [];
        const place = `${method} ${target.split('?')[0]}`;
        const message = `expected 404 or 405 for what is no operation, got ${status}`;
        return [{ rule: 'undocumented-path', severity: 'error', place, message }];
      }
      const place = `${found.operation.id} ${status}`;
      const { requestHeaders, requestBody, responseHeaders, responseBody } = exchange;
      const request = { target, headers: requestHeaders, body: requestBody };
      const sent = requestFault(opened, found, request);
      const received = responseFault(opened, found, { status, headers: responseHeaders, body: responseBody });
      return [
        ...(sent !== undefined && status < 400
          ? [{ rule: 'request-invalid', severity: 'error', place, message: sent.message } as const]
          : []),
        ...(sent === undefined && (status === 400 || status === 422)
          ? [{ rule: 'request-refused', severity: 'notice', place, message: `answered ${status}` } as const]
          : []),
        ...(received === undefined
          ? []
          : [{ rule: received.rule, severity: 'error', place, message: received.message } as const]),
      ];
    },
  };
}
