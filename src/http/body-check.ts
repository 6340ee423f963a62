import type { RequestValidators } from './operation.ts';
import { bodyFault } from './validation-issues.ts';

/** Validates the body of an operation that is embedded in another request, such as a proposed intent. */
export type CheckBody = (operationId: string, body: unknown, at: string) => void;

/** Creates a check that throws `invalid_data` with JSON pointers below `at`. */
export function createBodyCheck(validators: Readonly<Record<string, RequestValidators>>): CheckBody {
  return (operationId, body, at) => {
    const validate = validators[operationId]?.body;
    if (validate === undefined || validate(body)) return;
    const errors = validate.errors ?? [];
    throw bodyFault(errors.map((error) => ({ ...error, instancePath: at + error.instancePath })));
  };
}
