/** The plan of an operation, or why there is none. */
export type Planned<Plan> = { readonly value: Plan } | { readonly refusal: unknown };

/**
 * Returns the plan.
 *
 * @throws the error of the planning. Unwrap after `requireOwner`, so that unauthorized callers learn nothing from
 * it.
 */
export function unwrapPlan<Plan>(planned: Planned<Plan>): Plan {
  if ('refusal' in planned) throw planned.refusal;
  return planned.value;
}

/** Makes a plan and catches its error. */
export async function keepPlan<Plan>(plan: () => Promise<Plan>): Promise<Planned<Plan>> {
  try {
    return { value: await plan() };
  } catch (refusal) {
    return { refusal };
  }
}
