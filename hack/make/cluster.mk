# A cluster to look at. CLUSTER=existing with KUBECONFIG uses that one; see hack/lib.sh.

.PHONY: up
up: ## Bring up a cluster with the operator and a demo application, and try the demo.
	@hack/up.sh

.PHONY: down
down: ## Undo what up did.
	@hack/down.sh
