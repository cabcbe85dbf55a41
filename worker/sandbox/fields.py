"""Which fields of a challenge, a phase and a split each of EvalAI's endpoints shows, and no others.

What a client looks for in the wrong place is missing here, too.
"""

from __future__ import annotations

CHALLENGE_BY_QUEUE = (
    "id", "title", "short_description", "description", "terms_and_conditions", "submission_guidelines", "start_date", "end_date",
    "creator", "evaluation_details", "published", "challenge_usage_type", "submission_time_limit", "is_registration_open",
    "enable_forum", "anonymous_leaderboard", "leaderboard_description", "image", "is_active", "evaluation_script",
    "allowed_email_domains", "blocked_email_domains", "banned_email_ids", "require_complete_profile", "max_team_members", "forum_url",
    "remote_evaluation", "allow_resuming_submissions", "allow_host_cancel_submissions", "allow_cancel_running_submissions",
    "allow_participants_resubmissions", "is_docker_based", "is_static_dataset_code_upload", "slug", "max_docker_image_size",
    "cli_version", "github_repository", "github_branch", "vpc_cidr", "subnet_1_cidr", "subnet_2_cidr", "worker_instance_type",
    "worker_ami_type", "worker_disk_size", "max_worker_instance", "min_worker_instance", "desired_worker_instance", "cpu_only_jobs",
    "job_cpu_cores", "job_memory", "uses_ec2_worker", "ec2_storage", "ephemeral_storage", "evaluation_module_error", "worker_image_url",
    "worker_python_version", "sqs_retention_period", "use_fifo_sqs",
)  # fmt: skip
CHALLENGE_BY_NUMBER = (
    "id", "title", "short_description", "description", "terms_and_conditions", "submission_guidelines", "evaluation_details", "image",
    "start_date", "end_date", "creator", "domain", "domain_name", "challenge_usage_type", "list_tags", "has_prize", "has_sponsors",
    "published", "submission_time_limit", "is_registration_open", "enable_forum", "anonymous_leaderboard",
    "manual_participant_approval", "is_active", "leaderboard_description", "allowed_email_domains", "blocked_email_domains",
    "banned_email_ids", "require_complete_profile", "max_team_members", "approved_by_admin", "is_approval_requested", "forum_url",
    "is_docker_based", "is_static_dataset_code_upload", "slug", "max_docker_image_size", "cli_version", "remote_evaluation",
    "allow_resuming_submissions", "allow_host_cancel_submissions", "allow_cancel_running_submissions",
    "allow_participants_resubmissions", "workers", "created_at", "queue", "worker_cpu_cores", "worker_memory", "cpu_only_jobs",
    "job_cpu_cores", "job_memory", "uses_ec2_worker", "ec2_storage", "ephemeral_storage", "evaluation_module_error", "worker_image_url",
    "worker_python_version", "worker_instance_type", "sqs_retention_period", "github_repository", "github_branch", "is_frozen",
    "is_submission_paused",
)  # fmt: skip
PHASE_FOR_ALL = (
    "id", "name", "description", "leaderboard_public", "start_date", "end_date", "challenge", "max_submissions_per_day",
    "max_submissions_per_month", "max_submissions", "submission_artifact_retention_policy", "is_public", "is_active", "codename",
    "slug", "max_concurrent_submissions_allowed", "is_restricted_to_select_one_submission", "submission_meta_attributes",
    "is_partial_submission_evaluation_enabled", "allowed_submission_file_types", "default_submission_meta_attributes",
    "allowed_email_ids", "is_submission_public", "disable_logs", "is_submission_paused",
)  # fmt: skip
PHASE_FOR_HOSTS = (
    *PHASE_FOR_ALL,
    "annotations_uploaded_using_cli",
    "test_annotation",
    "environment_image",
    "config_id",
)
SPLIT_FOR_ALL = (
    "id", "dataset_split", "challenge_phase", "challenge_phase_name", "dataset_split_name", "visibility",
    "show_leaderboard_by_latest_submission", "show_execution_time", "show_scores_on_leaderboard", "leaderboard_schema",
    "is_multi_metric_leaderboard",
)  # fmt: skip
SPLIT_FOR_HOSTS = (
    "id", "challenge_phase", "dataset_split", "leaderboard", "visibility", "leaderboard_decimal_precision",
    "is_leaderboard_order_descending", "show_leaderboard_by_latest_submission", "show_execution_time", "show_scores_on_leaderboard",
)  # fmt: skip
