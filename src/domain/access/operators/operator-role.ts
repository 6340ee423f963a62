/** The roles of operators, lowest first. A role includes those before it. */
const operatorRoles = ['viewer', 'developer', 'admin'] as const;

export type OperatorRole = (typeof operatorRoles)[number];

/** Whether an operator with this role may do what needs `needed`. */
export function includesRole(role: OperatorRole, needed: OperatorRole): boolean {
  return operatorRoles.indexOf(role) >= operatorRoles.indexOf(needed);
}
